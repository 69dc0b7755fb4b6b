deploy :fleet, pool: "tank" do
  job :train do
    rollback_when "loss > 2"
    priority 1
  end
end
