deploy :fleet, pool: "tank" do
  job :train do
    priority 0x10
    retries 0b11
    copies 0o7
  end
end
