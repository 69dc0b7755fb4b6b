deploy :fleet, pool: "tank" do
  job :train do
    keep last: 3, metric: "loss"
  end
end
