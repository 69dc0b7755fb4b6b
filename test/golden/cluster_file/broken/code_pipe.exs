deploy :fleet, pool: "tank" do
  job :train do
    run "a" |> String.upcase()
    priority 1
  end
end
