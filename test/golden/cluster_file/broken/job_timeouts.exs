deploy :fleet, pool: "tank" do
  job :a do
    timeout "12"
  end
  job :b do
    timeout "hours"
  end
  job :c do
    timeout "0 s"
  end
  job :d do
    timeout "1.5 hours"
  end
  job :e do
    timeout "9999999 days"
  end
  job :f do
    timeout "3 hoours"
  end
end
