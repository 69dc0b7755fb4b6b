deploy :fleet, pool: "tank" do
  job :train do
    keep
  end
end
