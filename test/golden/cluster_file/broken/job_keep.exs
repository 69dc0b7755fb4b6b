deploy :fleet, pool: "tank" do
  job :train do
    keep last: 0, best: "3", mode: :lowest, metrc: "loss"
  end
end
