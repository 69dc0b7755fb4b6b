deploy :fleet, pool: "tank" do
  job :a do
    after :b
  end
  job :b do
    after :c
  end
  job :c do
    after :a
  end
  job :d do
    after :d
  end
end
