# Four machines of a mixed fleet, two models and one training run: what `./dev demo` plays through.
# The models' files are made by: python3 train_digits.py --initial (README.md has the two commands).
defmodule Digits.Cluster do
  use Zed.DSL

  deploy :digits_fleet, pool: "tank" do
    # The hardware. A node is free to hold anything unless it names the roots that it may hold.
    node :workstation do
      gpu "RTX 4090", vram: 24
      dataset "models"
      dataset "jobs"
    end

    node :macbook, pool: "zpool" do
      gpu "M3 Max", vram: 64, type: :unified
      dataset "models"
    end

    node :laptop2, pool: "data" do
      gpu "RTX 3080", vram: 10
      dataset "models"
    end

    node :server, pool: "nvme" do
      gpu "A100", vram: 80, count: 2
      dataset "models"
      dataset "jobs"
    end

    # The weights that the training begins with.
    model :digits_base do
      dataset "models/digits-base"
      version "1.0"
      file "models/digits-base.npz"
      requires vram: 8
    end

    # The same network, 400 times as wide: too large for the small laptop.
    model :digits_wide do
      dataset "models/digits-wide"
      version "1.0"
      file "models/digits-wide.npz"
      requires vram: 24
    end

    job :digits do
      model :digits_base
      dataset "jobs/digits-001"
      code "."

      run [
        "python3",
        "train_digits.py",
        "--epochs",
        "25",
        "--break-at-epoch",
        "16",
        "--epoch-seconds",
        "1"
      ]

      checkpoint_every "1 epoch"
      prefer gpu: "A100"
      fallback gpu: "RTX 4090"
      copies 1
    end

    # Small models go everywhere, ...
    replicate :models do
      from :server
      to [:workstation, :macbook, :laptop2]
      filter "size_gb < 0.01"
    end

    # ... the wide one only where there is room for it.
    replicate :digits_wide do
      from :server
      to [:workstation, :macbook]
    end
  end
end
