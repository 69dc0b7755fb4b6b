deploy :fleet do
  model :base do
    requires vram: 48, os: ["linux", "macos"], labels: ["x"]
  end
  job :inherits do
    model :base
  end
  job :overrides do
    model :base
    requires vram: "20 GiB", labels: ["y", "z"], gpus: 0
  end
  job :unknown_model do
    model :bace
    requires memory: 16
  end
  job :ranking do
    prefer [gpu: "H100", node: :server, gpu: "A100"]
    fallback label: ["fast", "quiet"]
  end
end
