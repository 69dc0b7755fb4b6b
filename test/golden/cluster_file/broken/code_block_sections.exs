deploy :fleet, pool: "tank" do
  job :train do
    priority 1
    else
    retries 2
    rescue
  end
end
