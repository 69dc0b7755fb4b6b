deploy :fleet, pool: "tank" do
  node :server do
    gpu
    gpu :a100
    gpu "A", vram: "lots"
    gpu "B", vram: 0
    gpu "C", vram: -8
    gpu "D", type: :shared
    gpu "E", type: "unified"
    gpu "F", count: 0
    gpu "G", count: 1.5
    gpu "H", memory: 8
    gpu ""
  end
end
