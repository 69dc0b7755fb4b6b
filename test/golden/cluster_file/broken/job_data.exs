deploy :fleet, pool: "tank" do
  job :train do
    data
    data "../x", :y
    data ["datasets/a", "datasets/a"]
  end
end
