deploy :fleet, pool: "tank" do
  job :train do
    priority &1
    retries 1..3
    copies !true
  end
end
