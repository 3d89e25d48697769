"""What every report has: raters, questionnaires, costs, quality rules, models as judges."""
