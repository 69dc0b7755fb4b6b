deploy :fleet, pool: "tank" do
  gpu "A100"
  node :server do
    model :llama
    run "x"
  end
  model :llama do
    checkpoint_every "1 epoch"
  end
  from :server
end
