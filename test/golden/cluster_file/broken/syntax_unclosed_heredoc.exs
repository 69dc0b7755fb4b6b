deploy :fleet, pool: "tank" do
  job :train do
    shell """
    python3 train.py
    priority 1
  end
end
