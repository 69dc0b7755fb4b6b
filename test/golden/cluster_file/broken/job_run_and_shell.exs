deploy :fleet, pool: "tank" do
  job :train do
    shell "a"
    run "b"
  end
end
