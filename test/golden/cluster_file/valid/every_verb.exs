deploy :fleet, pool: "tank" do
  node :server, address: "server.lan:4370", pool: "nvme", store: :zfs do
    gpu "A100", vram: 80, count: 2
    dataset "models"
    dataset "jobs"
    labels ["fast-disk", "ecc"]
  end

  node :laptop, store: :dir, address: "[fe80::1]:4370"

  model :llama70b do
    dataset "models/llama-70b"
    version "2.1"
    requires vram: 48, gpus: 1, os: ["linux"], labels: ["ecc"]
    file "weights/llama-70b.gguf"
  end

  dataset "datasets/digits" do
    version "2024-04"
    file "digits.csv"
  end

  job :prepare do
    shell "cut -d, -f1 digits.csv > labels"
    data "datasets/digits"
  end

  job :finetune do
    model :llama70b
    dataset "jobs/finetune-001"
    run ["python3", "train.py", "--rate", "0.1"]
    env PYTHONUNBUFFERED: "1"
    env OMP_NUM_THREADS: "1"
    code "./src"
    setup "pip install -r requirements.txt", timeout: "30 minutes"
    data "datasets/digits", "datasets/more"
    requires vram: "24GiB", vram_total: 160, gpus: 2, gpu: ["A100", "H100*"], arch: "8.0", driver: "550.54", cuda: "12.4", memory: "64GiB", disk: "1TB", os: :linux, labels: "fast-disk", share: true
    prefer gpu: ["H100", "A100"], node: :server, label: "ecc"
    fallback gpu: "RTX 4090"
    checkpoint_every "500 steps"
    after [:prepare]
    priority 10
    retries 5
    timeout "2 days"
    keep last: 10, best: 3, metric: "accuracy", mode: :max, every: 10
    copies 2
    exclusive true
  end

  replicate :models do
    from :server
    to [:laptop]
    filter "size_gb < 20 and not (quantized == \"q8_0\" or version in [\"1.0\", \"2.1\"])"
    max_rate "50 Mbit/s"
    keep last: 3
  end
end
