deploy :fleet, pool: "tank" do
  job :train do
    priority ?a
  end
end
