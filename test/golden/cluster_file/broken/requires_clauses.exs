deploy :fleet, pool: "tank" do
  model :llama do
    requires vram: "48 pounds", vram_total: nil, gpus: 100, gpu: [], arch: "sm 80", driver: "new", cuda: :new, memory: "0GiB", disk: "x", os: "windows", labels: "a", share: false
  end
end
