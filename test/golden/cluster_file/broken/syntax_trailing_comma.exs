deploy :fleet, pool: "tank" do
  node :server do
    gpu("A100",)
    gpu "A100",
  end
end
