deploy :fleet, pool: "tank" do
  node :server do
    dataset "../etc"
    dataset "/tank"
  end
  model :a do
    dataset "models/../../etc"
  end
  job :b do
    dataset "jobs//b"
  end
  job :c do
    dataset "jobs/.hidden"
  end
  job :d do
    dataset "zed/journal"
  end
  job :e do
    dataset "jobs/a b"
  end
  job :f do
    dataset ""
  end
  dataset "~/data"
end
