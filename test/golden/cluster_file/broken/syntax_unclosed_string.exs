deploy :fleet, pool: "tank" do
  job :train do
    run "python3 train.py
    priority 200
    retries "3"
  end
end
