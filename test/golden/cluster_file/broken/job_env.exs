deploy :fleet, pool: "tank" do
  job :train do
    env
    env "A"
    env A: 1, "B-C": "x", ZED_JOB: "y", CUDA_VISIBLE_DEVICES: "0"
    env D: "1"
    env D: "2", E: nil
  end
end
