deploy :fleet, pool: "tank" do
  job :train do
    priority 101
    retries -1
    copies 9
    timeout 12
    exclusive "yes"
  end
end
