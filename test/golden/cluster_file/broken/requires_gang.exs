deploy :fleet, pool: "tank" do
  job :pretrain do
    run ["torchrun", "train.py"]
    requires nodes: 2, gpus: 8, vram: 80
  end
end
