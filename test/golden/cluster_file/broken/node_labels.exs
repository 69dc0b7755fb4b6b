deploy :fleet, pool: "tank" do
  node :server do
    labels ["a", :b, "", "a", [1]]
  end
end
