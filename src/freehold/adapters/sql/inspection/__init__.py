"""Reading facts about the customer's database; implements `ports.inspection`, once a dialect."""
