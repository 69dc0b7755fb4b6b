deploy :fleet, pool: "tank" do
  job :train do
    priority 1.5
    retries "3"
    copies :two
    timeout "12 parsecs"
    exclusive nil
  end
end
