deploy :fleet, pool: "tank" do
  memory = 48
  model :llama do
    requires vram: memory
  end
end
