"""What a training costs on machines that are not here."""
