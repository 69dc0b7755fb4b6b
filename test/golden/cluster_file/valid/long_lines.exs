deploy :fleet do
  node :server, address: "a-very-long-host-name.in-a-very-long-domain.example.org", pool: "nvme/with/a/long/name", store: :zfs do
    labels ["label-one", "label-two", "label-three", "label-four", "label-five", "label-six", "label-seven"]
  end
  job :train do
    run ["python3", "train.py", "--learning-rate", "0.0001", "--epochs", "50", "--batch-size", "128", "--seed", "7"]
    requires vram: 48, gpus: 2, gpu: ["NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL"], os: "linux"
  end
end
