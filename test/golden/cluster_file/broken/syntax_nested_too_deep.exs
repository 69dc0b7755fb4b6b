deploy :fleet do
  node :n0 do
    node :n1 do
      node :n2 do
        node :n3 do
          node :n4 do
            node :n5 do
              node :n6 do
                node :n7 do
                  node :n8 do
                    node :n9 do
                      node :n10 do
                        node :n11 do
                          node :n12 do
                            node :n13 do
                              node :n14 do
                                node :n15 do
                                  node :n16 do
                                    node :n17 do
                                      node :n18 do
                                        node :n19 do
                                          node :n20 do
                                            node :n21 do
                                              node :n22 do
                                                node :n23 do
                                                  node :n24 do
                                                    node :n25 do
                                                      node :n26 do
                                                        node :n27 do
                                                          node :n28 do
                                                            node :n29 do
                                                              node :n30 do
                                                                node :n31 do
                                                                  node :n32 do
                                                                    node :n33 do
                                                                      node :n34 do
                                                                        node :n35 do
                                                                          node :n36 do
                                                                            node :n37 do
                                                                              node :n38 do
                                                                                node :n39 do
                                                                                  node :n40 do
                                                                                    node :n41 do
                                                                                      node :n42 do
                                                                                        node :n43 do
                                                                                          node :n44 do
                                                                                            node :n45 do
                                                                                              node :n46 do
                                                                                                node :n47 do
                                                                                                  node :n48 do
                                                                                                    node :n49 do
                                                                                                      node :n50 do
                                                                                                        node :n51 do
                                                                                                          node :n52 do
                                                                                                            node :n53 do
                                                                                                              node :n54 do
                                                                                                                node :n55 do
                                                                                                                  node :n56 do
                                                                                                                    node :n57 do
                                                                                                                      node :n58 do
                                                                                                                        node :n59 do
                                                                                                                          node :n60 do
                                                                                                                            node :n61 do
                                                                                                                              node :n62 do
                                                                                                                                node :n63 do
                                                                                                                                  node :n64 do
                                                                                                                                    node :n65 do
                                                                                                                                      node :n66 do
                                                                                                                                        node :n67 do
                                                                                                                                          node :n68 do
                                                                                                                                            node :n69 do
                                                                                                                                            end
                                                                                                                                          end
                                                                                                                                        end
                                                                                                                                      end
                                                                                                                                    end
                                                                                                                                  end
                                                                                                                                end
                                                                                                                              end
                                                                                                                            end
                                                                                                                          end
                                                                                                                        end
                                                                                                                      end
                                                                                                                    end
                                                                                                                  end
                                                                                                                end
                                                                                                              end
                                                                                                            end
                                                                                                          end
                                                                                                        end
                                                                                                      end
                                                                                                    end
                                                                                                  end
                                                                                                end
                                                                                              end
                                                                                            end
                                                                                          end
                                                                                        end
                                                                                      end
                                                                                    end
                                                                                  end
                                                                                end
                                                                              end
                                                                            end
                                                                          end
                                                                        end
                                                                      end
                                                                    end
                                                                  end
                                                                end
                                                              end
                                                            end
                                                          end
                                                        end
                                                      end
                                                    end
                                                  end
                                                end
                                              end
                                            end
                                          end
                                        end
                                      end
                                    end
                                  end
                                end
                              end
                            end
                          end
                        end
                      end
                    end
                  end
                end
              end
            end
          end
        end
      end
    end
  end
  noode :x
end
