deploy :fleet, pool: "tank" do
  node :server do
    gpu ("A100")
    labels ("a", "b")
  end
end
