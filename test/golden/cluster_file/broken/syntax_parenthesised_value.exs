deploy :fleet, pool: "tank" do
  job :train do
    priority(10)
    retries [(3)]
  end
end
