deploy :fleet, pool: "tank" do
  node :server do
    gpu "A100", vram:
    labels ["a"]
  end
end
