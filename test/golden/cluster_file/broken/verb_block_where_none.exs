deploy :fleet, pool: "tank" do
  node :server do
    gpu "A100" do
      vram 80
    end
  end
end
