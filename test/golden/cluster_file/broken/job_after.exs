deploy :fleet, pool: "tank" do
  job :prepare
  job :train do
    after :prepar
  end
  job :eval do
    after [:train, :train, "prepare"]
  end
end
