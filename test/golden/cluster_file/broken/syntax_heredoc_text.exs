deploy :fleet, pool: "tank" do
  job :train do
    shell """python3
    """
    priority 1
  end
end
