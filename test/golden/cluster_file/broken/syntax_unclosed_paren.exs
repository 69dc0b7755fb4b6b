deploy :fleet, pool: "tank" do
  node :server do
    gpu("A100", vram: 80
    dataset("models"
  end
end
