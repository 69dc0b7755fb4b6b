deploy :fleet, pool: "tank" do
  job :train do
    run []
    shell "x"
  end
end
