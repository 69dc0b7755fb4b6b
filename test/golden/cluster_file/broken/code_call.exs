deploy :fleet, pool: "tank" do
  job :train do
    timeout hours(3)
    env HOME: System.get_env("HOME")
  end
end
