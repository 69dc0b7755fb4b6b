deploy :fleet, pool: "tank" do
  job :prepare
  job :train do
    after [:prepar, :quite_another]
  end
end
