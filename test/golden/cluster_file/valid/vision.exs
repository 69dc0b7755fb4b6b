defmodule MyCluster.GPU do
  use Zed.DSL

  deploy :gpu_cluster, pool: "tank" do
    # Declare hardware capabilities
    node :workstation do
      gpu "RTX 4090", vram: 24
      dataset "models"
      dataset "jobs"
    end

    node :macbook do
      gpu "M3 Max", vram: 64, type: :unified
      dataset "models"  # replicated subset
    end

    # Model artifact
    model :llama70b do
      dataset "models/llama-70b"
      version "2.1"
      requires vram: 48  # only runs on nodes with enough VRAM
    end

    # Training job
    job :finetune do
      model :llama70b
      dataset "jobs/finetune-001"
      checkpoint_every "1 epoch"
      prefer gpu: "A100"  # soft preference
    end

    # Replication policy
    replicate :models do
      from :server
      to [:workstation, :macbook]
      filter "size_gb < 20"  # only small models to laptops
    end
  end
end
