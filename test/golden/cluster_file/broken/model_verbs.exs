deploy :fleet, pool: "tank" do
  model :llama do
    version 2.1
    requires 48
    file :weights
    dataset
  end
end
