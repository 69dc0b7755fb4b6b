deploy :fleet, pool: "tank" do
  node :server do
    gpu "A", vram: 24GB
    gpu "B", vram: 1__0
    gpu "C", vram: 1e3
    gpu "D", count: 99999999999999999999
  end
end
