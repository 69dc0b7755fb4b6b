deploy :fleet, pool: "tank" do
  job :train do
    priority 1
    retries 2
    priority 3
    model :a
    model :b
  end
end
