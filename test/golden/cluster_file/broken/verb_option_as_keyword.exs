deploy :fleet, pool: "tank" do
  job :train, priority: 3, run: "x" do
  end
  node :server, gpu: "A100"
end
