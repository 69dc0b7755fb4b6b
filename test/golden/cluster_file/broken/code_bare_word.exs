deploy :fleet, pool: "tank" do
  node server
  model :a do
    requires vram: big
  end
end
