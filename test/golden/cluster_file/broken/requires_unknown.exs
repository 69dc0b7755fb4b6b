deploy :fleet, pool: "tank" do
  job :train do
    requires vrm: 48, gpu: "A100", gpu: "H100", cores: 8
  end
end
