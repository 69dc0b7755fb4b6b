deploy :fleet, pool: "tank" do
  model :llama do
    version "2.1"
    requires vram: 48
  end

  job :train do
    model :"llama@2.1"
    code "./src"
    setup "pip install -r requirements.txt", timeout: "30 minutes"
    run "python3 train.py"
  end

  job :serve do
    model :"llama@production"
    setup "make"
    run "./serve"
  end
end
