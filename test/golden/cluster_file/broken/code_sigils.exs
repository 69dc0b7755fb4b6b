deploy :fleet, pool: "tank" do
  node :server do
    labels ~w(fast quiet)
    dataset ~s(models)
  end
end
