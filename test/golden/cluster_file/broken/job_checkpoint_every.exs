deploy :fleet, pool: "tank" do
  job :a do
    checkpoint_every 5
  end
  job :b do
    checkpoint_every "epoch"
  end
  job :c do
    checkpoint_every "0 epochs"
  end
  job :d do
    checkpoint_every "5 apples"
  end
  job :e do
    checkpoint_every "1.5 epochs"
  end
  job :f do
    checkpoint_every :epoch
  end
end
