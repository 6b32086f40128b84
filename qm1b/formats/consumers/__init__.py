"""Files in the layouts of the programs that train on datasets: written here, read only there."""
