deploy :fleet, pool: "tank" do
  node :server do
    gpu vram: 80, "A100"
    labels [a: 1, "b"]
  end
end
